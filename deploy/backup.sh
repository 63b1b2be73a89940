#!/bin/sh
# Copies both stores into a folder: gatehouse.dump (PostgreSQL) and redis.tar (append-only files).
#
#   backup.sh FOLDER
#
# Run it on the machine of Redis. The environment says:
#   DATABASE_URL_FILE  see with-database.sh
#   REDIS_CLI, REDISCLI_AUTH  see backup-redis.sh
set -eu
umask 077
folder=${1:?name the folder to write to}
mkdir -p "$folder"
new=$(mktemp -d "$folder/new.XXXXXX")
trap 'rm -r "$new"' EXIT
# Not every shell runs the command of EXIT when a signal ends it.
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

here=$(dirname "$0")
"$here/backup-redis.sh" >"$new/redis.tar"
# The processes that run now belong to no backup.
"$here/with-database.sh" pg_dump --format=custom --no-unlogged-table-data \
  --exclude-table-data=node_keys --file="$new/gatehouse.dump"
mv "$new/redis.tar" "$new/gatehouse.dump" "$folder"
echo "Both stores are in $folder."
