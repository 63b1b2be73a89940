/** Data for every view, made from the types of `ViewData`, so that new views are rendered as well. */
import path from 'node:path';
import { isInterfaceDeclaration } from 'typescript/unstable/ast';
import { API, type Checker, type Type } from 'typescript/unstable/sync';
import { message } from '../../src/base/message.ts';
import type { ViewData, ViewName } from '../../src/pages/view-data.ts';
import { toMoment } from '../../src/pages/words/moment.ts';

const ROOT = path.join(import.meta.dirname, '../..');

type SimpleKind = 'text' | 'number' | 'flag' | 'absent' | 'message' | 'moment';
type Shape =
  | { readonly kind: SimpleKind }
  | { readonly kind: 'literal'; readonly value: unknown }
  | { readonly kind: 'list'; readonly of: Shape }
  | { readonly kind: 'one of'; readonly shapes: readonly Shape[] }
  | { readonly kind: 'object'; readonly fields: readonly (readonly [string, Shape])[] };

/** A function for each view that makes its data, with `text` in each string. */
export type ViewSamples = {
  readonly [Name in ViewName]: (text: string, count: number) => ViewData[Name];
};

/**
 * Reads the types of all views. Samples with `count` 0 have no optional values and empty lists. Others have lists of
 * `count` items, whose samples have a `count` of 0, 1 and 2 in turn. A flag is set if the count is odd.
 */
export function readViewSamples(): ViewSamples {
  const api = new API({ cwd: ROOT });
  const openProject = path.join(ROOT, 'tsconfig.json');
  const [project] = api.updateSnapshot({ openProject }).getProjects();
  const source = project?.program.getSourceFile(path.join(ROOT, 'src/pages/view-data.ts'));
  const views = source?.statements.find((node) => isInterfaceDeclaration(node) && node.name.text === 'ViewData');
  const type = views && project?.checker.getTypeAtLocation(views);
  const shape = type && project && shapeOf(type, project.checker);
  api.close();
  if (shape?.kind !== 'object') throw new Error('no interface ViewData in view-data.ts');
  const samples = shape.fields.map(([name, view]) => {
    return [name, (text: string, count: number) => sample(view, text, count)] as const;
  });
  return Object.fromEntries(samples) as ViewSamples;
}

function shapeOf(type: Type, checker: Checker): Shape {
  if (type.isLiteralType() && !type.isBooleanLiteralType()) {
    return { kind: 'literal', value: type.value };
  }
  if (type.isUnionType()) {
    // A boolean is the union of `true` and `false`; `true` alone stands for the flag.
    const types = type.getTypes().filter((one) => !(one.isBooleanLiteralType() && !one.value));
    return { kind: 'one of', shapes: types.map((one) => shapeOf(one, checker)) };
  }
  if (checker.isArrayType(type) && type.isTypeReference()) {
    const [item] = checker.getTypeArguments(type);
    if (item) return { kind: 'list', of: shapeOf(item, checker) };
  }
  const simple = SIMPLE[checker.typeToString(type)];
  if (simple) return { kind: simple };
  if (!type.isObjectType() && !type.isIntersectionType()) {
    throw new Error(`no sample of ${checker.typeToString(type)}`);
  }
  const fields = checker.getPropertiesOfType(type).map((field) => {
    const own = checker.getTypeOfSymbol(field);
    if (!own) throw new Error(`no type of ${field.name}`);
    known.add(field.name);
    return [field.name, shapeOf(own, checker)] as const;
  });
  return { kind: 'object', fields };
}

const SIMPLE: Readonly<Record<string, SimpleKind>> = {
  string: 'text',
  number: 'number',
  true: 'flag',
  undefined: 'absent',
  null: 'absent',
  Message: 'message',
  Moment: 'moment',
};

function sample(shape: Shape, text: string, count: number): unknown {
  switch (shape.kind) {
    case 'text':
      return text;
    case 'number':
      return count;
    case 'flag':
      return count % 2 === 1;
    case 'absent':
      return undefined;
    case 'literal':
      return shape.value;
    case 'moment':
      return toMoment(new Date(Date.UTC(2026, 10, 21, 4, count)));
    case 'message':
      // A message with a value and a tag.
      return message('confirm.password-of', { email: text });
    case 'one of': {
      const absent = shape.shapes.find(({ kind }) => kind === 'absent');
      if (absent && count === 0) return undefined;
      const shapes = shape.shapes.filter((one) => one !== absent);
      const chosen = shapes[count % shapes.length];
      return chosen && sample(chosen, text, count);
    }
    case 'list': {
      // Never make an empty list of the parts of a page: one part is always the current one.
      const isOfParts = shape.of.kind === 'object' && shape.of.fields.some(isMark);
      const length = isOfParts ? Math.max(count, 2) : count;
      // Make the texts of items different, because some texts become ids.
      return Array.from({ length }, (_, index) => sample(shape.of, `${text}${index}`, index % 3));
    }
    case 'object': {
      const fields = shape.fields.map(([name, field]) => [name, sample(field, text, count)]);
      return withoutOthers(Object.fromEntries(fields));
    }
  }
}

/** The fields of all views. */
const known = new Set<string>();

/** A view that reads a field which is of no view fails: such a field would print nothing. */
const withoutOthers = (fields: Record<string, unknown>): unknown =>
  new Proxy(fields, {
    get(target, name) {
      if (typeof name === 'string' && !known.has(name) && !(name in target)) throw new Error(`no field ${name}`);
      return Reflect.get(target, name);
    },
  });

const isMark = ([name]: readonly [string, Shape]): boolean => name === 'isCurrent';
