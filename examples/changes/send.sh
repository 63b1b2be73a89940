#!/bin/sh
# Fails if a line was not answered or was held back, so that the lines stay in the outbox.
answers=$(curl --fail-with-body --silent --show-error --header @authorization --data-binary @- http://localhost:3001/changes)
status=$?
printf '%s\n' "$answers" | grep --extended-regexp '"(refused|held_back|not_done)"' >&2
test $status -eq 0 && ! printf '%s\n' "$answers" | grep --quiet '"held_back"'
