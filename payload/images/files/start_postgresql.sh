#!/bin/sh
# Database of a real assisted service: PostgreSQL in the container's own file system, so it starts empty each time, as upstream's.
set -eu
PATH=$(echo /usr/lib/postgresql/*/bin):$PATH
data=/tmp/postgres/data
initdb --pgdata "$data" --username postgres --auth trust --encoding UTF8 --locale C >/dev/null
postgres --single -D "$data" postgres <<SQL >/dev/null
CREATE DATABASE $POSTGRESQL_DATABASE
CREATE ROLE $POSTGRESQL_USER SUPERUSER LOGIN PASSWORD '$POSTGRESQL_PASSWORD'
SQL
# Without the compiler of expressions, which this image does not have.
exec postgres -D "$data" -k /tmp -c jit=off -c listen_addresses=127.0.0.1
