#!/bin/sh
# Copies both stores into a folder: gatehouse.dump (PostgreSQL) and redis.tar (append-only files).
#
#   backup.sh FOLDER
#
# Run it on the machine of Redis. The environment says:
#   DATABASE_URL_FILE  a file with the URL of the database (default: /etc/gatehouse/database-url)
#   REDIS_CLI, REDISCLI_AUTH  see backup-redis.sh
set -eu
umask 077
folder=${1:?name the folder to write to}
mkdir -p "$folder"
url=$(cat "${DATABASE_URL_FILE:-/etc/gatehouse/database-url}")

"$(dirname "$0")/backup-redis.sh" >"$folder/redis.tar.new"
pg_dump --format=custom --file="$folder/gatehouse.dump.new" "$url"
mv "$folder/redis.tar.new" "$folder/redis.tar"
mv "$folder/gatehouse.dump.new" "$folder/gatehouse.dump"
echo "Both stores are in $folder."
