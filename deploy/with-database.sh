#!/bin/sh
# Runs a program of PostgreSQL on the database of Gatehouse. The password is not on its command line, which
# every user of the machine can read.
#
#   with-database.sh pg_restore --single-transaction gatehouse.dump
#
# The environment says:
#   DATABASE_URL_FILE  a file with the URL of the database (default: /etc/gatehouse/database-url)
set -eu

refuse() {
  echo "$1" >&2
  exit 1
}

# Replaces each %XX by its character.
decoded() {
  rest=$1
  while [ "$rest" != "${rest#*%}" ]; do
    printf '%s' "${rest%%\%*}"
    rest=${rest#*%}
    case $rest in
      [0-9A-Fa-f][0-9A-Fa-f]*) ;;
      *) refuse 'Write % in the password of the URL of the database as %25.' ;;
    esac
    printf "\\$(printf %03o "0x${rest%"${rest#??}"}")"
    rest=${rest#??}
  done
  printf '%s' "$rest"
}

program=${1:?name the program to run}
shift
file=${DATABASE_URL_FILE:-/etc/gatehouse/database-url}
url=$(cat "$file")
case $url in
  postgres://* | postgresql://*) ;;
  *) refuse "$file does not begin with postgres:// or postgresql://." ;;
esac
case $url in
  *[?\&]password=* | *[?\&]sslpassword=*)
    refuse 'Write the password before the host in the URL of the database: postgres://user:password@host/name'
    ;;
esac
# As the service reads it: an @ in the password is a part of it, because only the last one ends the account.
account=${url#*://}
account=${account%%[/?]*}
case $account in
  *:*@*)
    after=${url#*://"${account%@*}@"}
    account=${account%@*}
    PGPASSWORD=$(decoded "${account#*:}")
    export PGPASSWORD
    url=${url%%://*}://${account%%:*}@$after
    ;;
esac
exec "$program" --dbname="$url" "$@"
