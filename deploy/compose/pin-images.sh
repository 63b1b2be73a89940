#!/bin/sh
# Pulls the images that compose.yaml starts from and writes each with its digest into .env, which Compose
# reads. From then on only these images are started, until this script runs again.
set -eu
cd "$(dirname "$0")/../.."

touch .env
grep -v '^[A-Z]*_IMAGE=' .env >.env.new || true
# From lines such as: image: ${REDIS_IMAGE:-redis:7-bookworm}
sed -n 's/.*\${\([A-Z]*_IMAGE\):-\([^}]*\)}.*/\1 \2/p' compose.yaml | while read -r variable image; do
  docker pull --quiet "$image" >/dev/null </dev/null
  digest=$(docker image inspect --format '{{index .RepoDigests 0}}' "$image" </dev/null)
  echo "$variable=$image@${digest##*@}" | tee -a .env.new
done
mv .env.new .env
