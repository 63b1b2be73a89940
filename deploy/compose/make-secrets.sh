# Makes the secrets of compose.yaml, once, each readable by its reader alone. Run again it changes
# nothing: a store with a new password would lock out everybody who has the old one.
set -eu
umask 077
cd /secrets

# Nothing in it has a meaning in a URL.
key() {
  node -p 'require("node:crypto").randomBytes(48).toString("base64url")'
}

# reader (uid), file, content
keep() {
  printf '%s\n' "$3" >"$2"
  chown "$1:$1" "$2"
}

nodes=1000
redis=999
root=0

# Written last: where it is, everything is.
if [ -e nodes/complete ]; then exit; fi
of_postgres=$(key)
of_redis=$(key)
rm -f nodes/* postgres/* redis/*
keep "$root" postgres/password "$of_postgres"
keep "$redis" redis/redis.conf "requirepass $of_redis"
keep "$nodes" nodes/database-url "postgres://gatehouse:$of_postgres@postgres:5432/gatehouse"
keep "$nodes" nodes/redis-url "redis://:$of_redis@redis:6379"
keep "$nodes" nodes/cookie-keys "$(key)"
keep "$nodes" nodes/token-keys "$(key)"
sync
keep "$root" nodes/complete yes
echo 'The secrets are made.'
