#!/bin/sh
# Writes Redis' append-only files to standard output, as a tar archive. Run it on the machine of Redis or
# in its container, as a user who may read its files. The environment says:
#   REDIS_CLI      the command that reaches Redis (default: redis-cli), for example
#                  redis-cli --user backup --tls --cacert /etc/redis/ca.crt
#   REDISCLI_AUTH  the password, which redis-cli itself reads from there
# Under ACL its user needs: +config|get +config|set +info
set -eu

fail() {
  echo "No backup was made: $*" >&2
  exit 1
}

# redis-cli exits with 0 for an error of Redis, such as NOAUTH, so the answer is checked.
redis() {
  # The variable is unquoted on purpose, because it also holds options. Standard input may be this script.
  answer=$(${REDIS_CLI:-redis-cli} "$@" 2>&1 </dev/null) || fail "redis-cli $*: $answer"
  case $answer in
    *NOAUTH* | *NOPERM* | *WRONGPASS* | ERR* | *'(error)'*) fail "redis-cli $*: $answer" ;;
  esac
  printf '%s\n' "$answer"
}
# In steps, because a pipe and a condition would hide that redis-cli failed.
setting() {
  lines=$(redis config get "$1")
  printf '%s\n' "$lines" | sed -n 2p
}

appendonly=$(setting appendonly)
[ "$appendonly" = yes ] || fail 'Redis keeps no append-only files (appendonly yes)'
directory=$(setting dir)
files=$(setting appenddirname)
[ -d "$directory/$files" ] || fail "there is no $directory/$files here: run this on the machine of Redis"

# No rewrite may begin while the files are copied, and a rewrite in progress has to end first.
percentage=$(setting auto-aof-rewrite-percentage)
[ "$percentage" != 0 ] || fail 'Redis does not rewrite its files (auto-aof-rewrite-percentage 0): another' \
  "backup is running, or one was interrupted. If none is running, repair it, and run this again:
  ${REDIS_CLI:-redis-cli} config set auto-aof-rewrite-percentage 100
If you switched rewriting off on purpose, use 1000000 instead of 100."
copying=
finish() {
  [ -z "$copying" ] || kill "$copying" 2>/dev/null || :
  redis config set auto-aof-rewrite-percentage "$percentage" >/dev/null
}
trap finish EXIT
# Not every shell runs the command of EXIT when a signal ends it. PIPE: the reader of the archive has gone.
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM
[ "$(redis config set auto-aof-rewrite-percentage 0)" = OK ] || fail 'Redis does not stop rewriting its files'
while redis info persistence | grep -q 'aof_rewrite_in_progress:1'; do sleep 1; done
copied=$(ls "$directory/$files")
# tar says so and exits with 1 if a file grows while it is read, as the last one of a busy Redis does. That
# is no failure: when Redis loads it, it drops an incomplete command at the end.
# In the background, because a shell runs the command of a signal only after its present command, but at once
# during `wait`.
tar -C "$directory" -cf - "$files" &
copying=$!
wait "$copying" || [ $? = 1 ] || fail "$directory/$files cannot be read"
copying=
[ "$(ls "$directory/$files")" = "$copied" ] || fail 'Redis rewrote its files meanwhile: run it again'
