#!/bin/sh
# Makes the roles of SECURITY.md in a new database; the image runs this once, as a superuser.
set -eu
psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname="$POSTGRES_DB" << 'SQL'
\getenv database POSTGRES_DB
\getenv owner_password POSTGRES_OWNER_PASSWORD
\getenv app_password POSTGRES_APP_PASSWORD
CREATE ROLE fairshift LOGIN PASSWORD :'owner_password';
-- Tables have policies for requests of one owner. Workers and commands see all rows, and use COPY.
CREATE ROLE fairshift_app LOGIN BYPASSRLS PASSWORD :'app_password';
-- Requests of the API act as this role.
CREATE ROLE fairshift_tenant NOLOGIN;
GRANT fairshift_tenant TO fairshift, fairshift_app;
ALTER DATABASE :"database" OWNER TO fairshift;
SQL
