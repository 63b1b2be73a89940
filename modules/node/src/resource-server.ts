/** The entry point of `gatehouse/resource-server`: everything an API imports to protect itself. */
import {
  type Caller,
  mayReach,
  type Organization,
  type Right,
  type Role,
  requireRight,
  type Warehouse,
  warehousesOf,
} from './caller.ts';
import {
  answerRefusals,
  callerContext,
  callerFrom,
  protect,
  protectExpress,
  requireCaller,
  useCaller,
} from './frameworks.ts';
import type { FailureReason, IntrospectionFailure } from './introspection-answer.ts';
import { createIntrospector, type Identified, type Introspector, type IntrospectorOptions } from './introspector.ts';
import { type ProtectedResource, protectedResourceMetadata } from './protected-resource.ts';
import type { ReceivedRequest } from './received-token.ts';
import { CallerRefused, type Refusal } from './refusal.ts';

export type {
  Caller,
  FailureReason,
  Identified,
  IntrospectionFailure,
  Introspector,
  IntrospectorOptions,
  Organization,
  ProtectedResource,
  ReceivedRequest,
  Refusal,
  Right,
  Role,
  Warehouse,
};
export {
  answerRefusals,
  CallerRefused,
  callerContext,
  callerFrom,
  createIntrospector,
  mayReach,
  protect,
  protectExpress,
  protectedResourceMetadata,
  requireCaller,
  requireRight,
  useCaller,
  warehousesOf,
};
