/** `node policies.cjs FILE EVALUATOR`: what CSP Evaluator finds in the policies of the file, of which each line is one. */
const { readFileSync } = require('node:fs');
const path = require('node:path');

const [file, evaluator] = process.argv.slice(2);
const { CspEvaluator } = require(evaluator);
const { CspParser } = require(path.join(evaluator, 'dist/parser.js'));

/** Only for an origin with JSONP, AngularJS or uploads: ours has none, and its JSON is sent with `nosniff`. */
const LEFT_OUT = "'self' can be problematic if you host JSONP, AngularJS or user uploaded files.";

const policies = [...new Set(readFileSync(file, 'utf8').trim().split('\n'))];
let found = 0;
for (const policy of policies) {
  const findings = new CspEvaluator(new CspParser(policy).csp).evaluate();
  const kept = findings.filter(({ description }) => description !== LEFT_OUT);
  for (const { directive, value, description } of kept)
    console.log(`${policy}\n  ${directive} ${value}: ${description}`);
  found += kept.length;
}
console.log(`${policies.length} policies, ${found} findings`);
if (policies.length === 0 || found > 0) process.exitCode = 1;
