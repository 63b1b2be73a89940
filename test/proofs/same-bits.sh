#!/usr/bin/env bash
# Builds the npm package, the wheel and the image twice, in two folders and at two times, and compares the digests.
# The image needs buildah and mmdebstrap: its base is made here, once.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The time of the commit, for every file.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
version=$(node -p 'require("./package.json").version')

for place in first the/second; do
  mkdir -p "$work/$place"
  git archive HEAD | tar -x -C "$work/$place"
  ln -s "$root/node_modules" "$work/$place/node_modules"
  (
    cd "$work/$place"
    # Other times and another umask than in the other folder.
    [ "$place" = first ] || { umask 077 && find . -type f -exec touch -d '2001-02-03' {} + && chmod -R go-rwx .; }
    npm run --silent pack >/dev/null 2>&1
    python3 modules/python/write_wheel.py "$version" . >/dev/null
    sha256sum ./*.tgz ./*.whl
  )
done > "$work/digests"
node test/proofs/proofs.ts image-digests "$SOURCE_DATE_EPOCH" "$work/first" "$work/the/second" >> "$work/digests"
sort "$work/digests"
# Each line must occur twice.
[ "$(uniq -u <(sort "$work/digests") | wc -l)" -eq 0 ] || { echo 'The bits differ.' >&2; exit 1; }
