#!/bin/sh
# Writes the users with their passwords, then starts Redis; arguments are options of Redis.
set -eu
umask 077
file=/tmp/users.acl
grep '^user ' /etc/fairshift/users.acl > "$file"
for user in producer worker system flower reader; do
    variable="REDIS_$(echo "$user" | tr '[:lower:]' '[:upper:]')_PASSWORD"
    password=$(printenv "$variable")
    case $password in
        '' | *[!0-9A-Za-z_-]*)
            echo "$variable may only have letters, digits, - and _: it is a part of a URL." >&2
            exit 1
            ;;
    esac
    sed "s/>$user-password/>$password/" "$file" > "$file.new"
    mv "$file.new" "$file"
done
exec redis-server /etc/fairshift/redis.conf "$@"
