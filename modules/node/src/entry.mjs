// The module for `import`: the CommonJS build under the same names, so that there is one `CallerRefused`.
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
} from './resource-server.js';
