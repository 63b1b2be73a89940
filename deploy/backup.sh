#!/bin/sh
# Copies both stores into a folder: gatehouse.dump (PostgreSQL) and redis.tar (append-only files).
#
#   backup.sh FOLDER
#
# To be run on the machine of Redis, as a user who may read its files. The environment says:
#   DATABASE_URL_FILE  a file with the URL of the database (default: /etc/gatehouse/database-url)
#   REDIS_CLI          how redis-cli reaches Redis (default: redis-cli), for example
#                      redis-cli --user backup --tls --cacert /etc/redis/ca.crt
#   REDISCLI_AUTH      the password, which redis-cli itself reads from there
# Under ACL its user needs: +config|get +config|set +info
set -eu
umask 077
folder=${1:?name the folder to write to}
url=$(cat "${DATABASE_URL_FILE:-/etc/gatehouse/database-url}")

fail() {
  echo "No backup was made: $*" >&2
  exit 1
}

# redis-cli exits with 0 for an error of Redis, such as NOAUTH: only the answer tells.
redis() {
  # Unquoted on purpose: it holds the options as well.
  answer=$(${REDIS_CLI:-redis-cli} "$@" 2>&1) || fail "redis-cli $*: $answer"
  case $answer in
    *NOAUTH* | *NOPERM* | *WRONGPASS* | ERR* | *'(error)'*) fail "redis-cli $*: $answer" ;;
  esac
  printf '%s\n' "$answer"
}
setting() { redis config get "$1" | sed -n 2p; }

[ "$(setting appendonly)" = yes ] || fail 'Redis keeps no append-only files (appendonly yes)'
directory=$(setting dir)
files=$(setting appenddirname)
[ -d "$directory/$files" ] || fail "there is no $directory/$files here: run this on the machine of Redis"

# No rewrite may begin while the files are copied, and one that goes on has to end first.
percentage=$(setting auto-aof-rewrite-percentage)
trap 'redis config set auto-aof-rewrite-percentage "$percentage" >/dev/null' EXIT
[ "$(redis config set auto-aof-rewrite-percentage 0)" = OK ] || fail 'Redis goes on rewriting its files'
while redis info persistence | grep -q 'aof_rewrite_in_progress:1'; do sleep 1; done
tar -C "$directory" -cf "$folder/redis.tar.new" "$files"

pg_dump --format=custom --file="$folder/gatehouse.dump.new" "$url"
mv "$folder/redis.tar.new" "$folder/redis.tar"
mv "$folder/gatehouse.dump.new" "$folder/gatehouse.dump"
echo "Both stores are in $folder."
