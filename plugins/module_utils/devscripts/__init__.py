"""The bridge to dev-scripts: its configuration files as profiles (`importer`), and profiles as its files (`exporter`)."""
