# Creates the secrets of compose.yaml once, each readable only by its user, and gives Caddy its volume.
# A second run creates no new ones: a store with a new password would refuse the nodes that have the old one.
set -eu
umask 077
cd /secrets

# Only characters without a meaning in a URL.
key() {
  node -p 'require("node:crypto").randomBytes(48).toString("base64url")'
}

# reader (uid), file, content
keep() {
  printf '%s\n' "$3" >"$2"
  chown "$1:$1" "$2"
}

nodes=1000
caddy=1001
postgres=999
redis=999
root=0

# Gives a file or folder to its reader, also if another user owned it.
# reader (uid), file or folder
give() {
  [ "$(stat -c %u "$2")" = "$1" ] || chown -R "$1:$1" "$2"
}

give "$caddy" caddy
# Written last: if it is there, everything is.
if [ -e nodes/complete ]; then
  give "$postgres" postgres/password
  exit
fi
of_postgres=$(key)
of_redis=$(key)
rm -f nodes/* postgres/* redis/*
keep "$postgres" postgres/password "$of_postgres"
keep "$redis" redis/redis.conf "requirepass $of_redis"
keep "$nodes" nodes/database-url "postgres://gatehouse:$of_postgres@postgres:5432/gatehouse"
keep "$nodes" nodes/redis-url "redis://:$of_redis@redis:6379"
keep "$nodes" nodes/cookie-keys "$(key)"
keep "$nodes" nodes/token-keys "$(key)"
sync
keep "$root" nodes/complete yes
echo 'The secrets are made.'
