#!/bin/sh
# Runs a program of PostgreSQL on the database of Gatehouse. The password is not on its command line, which
# every user of the machine can read.
#
#   with-database.sh pg_restore --single-transaction gatehouse.dump
#
# The environment says:
#   DATABASE_URL_FILE  a file with the URL of the database (default: /etc/gatehouse/database-url)
set -eu

# Replaces each %XX by its character.
decoded() {
  rest=$1
  while [ "$rest" != "${rest#*%}" ]; do
    printf '%s' "${rest%%\%*}"
    rest=${rest#*%}
    printf "\\$(printf %03o "0x${rest%"${rest#??}"}")"
    rest=${rest#??}
  done
  printf '%s' "$rest"
}

program=${1:?name the program to run}
shift
url=$(cat "${DATABASE_URL_FILE:-/etc/gatehouse/database-url}")
case $url in
  *[?\&]password=*)
    echo 'Write the password before the host in the URL of the database: postgres://user:password@host/name' >&2
    exit 1
    ;;
esac
account=${url#*://}
account=${account%%/*}
case $account in
  *:*@*)
    account=${account%%@*}
    PGPASSWORD=$(decoded "${account#*:}")
    export PGPASSWORD
    url=${url%%://*}://${account%%:*}@${url#*@}
    ;;
esac
exec "$program" --dbname="$url" "$@"
