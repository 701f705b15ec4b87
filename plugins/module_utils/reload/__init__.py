"""Components of the lab payload in a running lab: where they run, how they are replaced there, and what a watch looks at."""
