/** Alerts and dashboard query metrics that the service exports, and each alert fires when it should. */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import { startWithUpstream } from '../sign-in-upstream/service.ts';
import { samplesOf } from '../support/metrics.ts';
import { clientCredentials } from '../support/oauth.ts';
import { findProgram } from '../support/programs.ts';
import { describeOn, type Requirement, required } from '../support/requirements.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const DEPLOY = path.join(import.meta.dirname, '../../deploy');
const RULES = path.join(DEPLOY, 'prometheus/gatehouse.rules.yml');
const RUNBOOK = path.join(DEPLOY, '../docs/alerts.md');
const TESTS = path.join(DEPLOY, 'prometheus/gatehouse.rules.test.yml');
const textOf = (file: string): string => readFileSync(file, 'utf8');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: { readonly runbook?: string };
}

interface Panel {
  readonly id: number;
  readonly targets?: readonly { readonly expr: string }[];
}

const rules: readonly Rule[] = parse(textOf(RULES)).groups.flatMap((group: { rules: Rule[] }) => group.rules);
const panels: readonly Panel[] = JSON.parse(textOf(path.join(DEPLOY, 'grafana/gatehouse.json'))).panels;
const asked = [
  ...rules.map(({ expr }) => expr),
  ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
];

const WORDS = ['by', 'and', 'or', 'unless', 'on', 'ignoring', 'without'];
/** Labels that Prometheus adds to the metrics that it scrapes. */
const LABELS_OF_TARGET = ['job', 'instance'];

/** Returns the metrics of a query: every name that is no function, keyword or label. */
const metricsIn = (expr: string): string[] =>
  [
    ...expr
      .replaceAll(/\{[^}]*\}|\[[^\]]*\]|"[^"]*"/g, ' ')
      .replaceAll(/\b(by|without)\s*\([^)]*\)/g, ' ')
      .matchAll(/\b([a-z_][a-z_0-9]*)\b(?!\s*\()/g),
  ]
    .map(([, name = '']) => name)
    .filter((name) => !WORDS.includes(name));

/** Yields each label by which a query selects, with the values that the query names. */
function* selectorsIn(expr: string) {
  for (const [, metric = '', list = ''] of expr.matchAll(/([a-z_0-9]+)\{([^}]*)\}/g)) {
    for (const [, label = '', value = ''] of list.matchAll(/([a-z_]+)\s*(?:=~|!=|!~|=)\s*"([^"]*)"/g)) {
      const values = /^[\w/|]+$/.test(value) ? value.split('|') : [];
      yield { metric, label, values };
    }
  }
}

const promtool: Requirement = {
  program: findProgram('promtool'),
  remedy: 'promtool (Debian package prometheus)',
};

describe('alerts and dashboard', () => {
  const on = startWithUpstream({ settings: { limits: { clientFailures: 1 } } });

  it('alerts and dashboard query only metrics, labels and values that the service exports', async () => {
    const { service, seeded } = on;
    const { issuer } = service;
    await fetch(`${issuer}/oauth/introspect`, { method: 'POST' });
    await fetch(`${issuer}/oauth/token`, { method: 'POST' });
    // The second request exceeds the rate limit of the client.
    const wrong = { ...seeded.clients.machine, secret: 'gate_cs_wrong' };
    for (const status of [401, 429]) {
      expect(await clientCredentials(issuer, wrong)).to.include({ status });
    }
    await service.clean();
    const text = await (await fetch(`${service.operatorsUrl}/metrics`)).text();
    const exported = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].flatMap(([, name = '', type]) =>
      type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    );
    const samples = [...samplesOf(text).keys()];
    for (const expr of asked) {
      const metrics = metricsIn(expr);
      expect(metrics, expr).to.have.length.above(0);
      expect([...exported, 'up'], expr).to.include.members(metrics);
      for (const { metric, label, values } of selectorsIn(expr)) {
        if (LABELS_OF_TARGET.includes(label)) continue;
        const own = samples.filter((sample) => sample.startsWith(`${metric}{`)).join('\n');
        expect(own, expr).to.include(`${label}="`);
        for (const value of values) expect(own, expr).to.include(`${label}="${value}"`);
      }
    }
  });

  it('each alert has a test, and each panel a unique id', () => {
    const { tests } = parse(textOf(TESTS));
    const raised = tests
      .flatMap((test: { alert_rule_test: unknown[] }) => test.alert_rule_test)
      .filter(({ exp_alerts }: { exp_alerts: unknown[] }) => exp_alerts.length > 0)
      .map(({ alertname }: { alertname: string }) => alertname);
    expect([...new Set(raised)]).to.have.members(rules.map(({ alert }) => alert));
    expect(new Set(panels.map(({ id }) => id))).to.have.lengthOf(panels.length);
  });

  it('the docs have a section for each alert, with its severity and what to do', () => {
    const sections = new Map(
      textOf(RUNBOOK)
        .split(/^## /m)
        .slice(1)
        .map((section): [string, string] => [section.split('\n')[0] ?? '', section]),
    );
    expect([...sections.keys()]).to.have.members(rules.map(({ alert }) => alert));
    for (const { alert, labels, annotations } of rules) {
      expect(annotations.runbook).to.equal(`docs/alerts.md#${alert.toLowerCase()}`);
      expect(sections.get(alert), alert).to.match(new RegExp(`^\\*${labels.severity}\\.\\*`, 'm'));
      expect(sections.get(alert), alert).to.match(/^1\. /m);
    }
  });

  describeOn([promtool], 'checked by promtool', () => {
    const check = (...args: string[]): void => {
      // Collecting its garbage less often saves a third of its work.
      execFileSync(required(promtool), args, { stdio: 'pipe', env: { ...process.env, GOGC: '400' } });
    };

    it('each alert fires under its condition, and not before', () => {
      check('check', 'rules', RULES);
      check('test', 'rules', TESTS);
    });

    it('Prometheus accepts all queries of the alerts and the dashboard', () => {
      const exprs = asked.map((expr) => expr.replaceAll('$__rate_interval', '5m'));
      const recorded = exprs.map((expr, at) => ({ record: `panel:${at}`, expr }));
      const file = path.join(temporaryDirectory('rules'), 'dashboard.yml');
      writeFileSync(file, stringify({ groups: [{ name: 'dashboard', rules: recorded }] }));
      check('check', 'rules', file);
    });
  });
});
