/** GraphQL Yoga: identifies before anything of a request is parsed, and shows refusals unmasked. */
import type { Introspector } from './introspector.ts';
import type { ReceivedRequest } from './received-token.ts';
import { CallerRefused } from './refusal.ts';

/** A plugin; resolvers find `caller` in their context, those of a batch as well. */
export function useCaller(introspector: Introspector) {
  return {
    async onRequestParse(asked: {
      readonly request: Request;
      readonly serverContext: object & { readonly req?: ReceivedRequest };
      endResponse(response: Response): void;
      readonly fetchAPI: { readonly Response: typeof Response };
    }): Promise<void> {
      const { headers, url } = asked.request;
      const rawHeaders = asked.serverContext.req?.rawHeaders;
      const { caller, refusal } = await introspector.identify({ headers, url, rawHeaders });
      if (!refusal) Object.assign(asked.serverContext, { caller });
      else asked.endResponse(new asked.fetchAPI.Response(refusal.body, refusal));
    },
    onExecute: () => ({ onExecuteDone: unmask }),
    onSubscribe: () => ({ onSubscribeResult: unmask }),
  };
}

/** Yoga masks each error that another one caused; this one is meant to be seen. */
function unmask({ result }: { readonly result: object }): void {
  for (const error of 'errors' in result && Array.isArray(result.errors) ? result.errors : []) {
    if (error.originalError instanceof CallerRefused) error.originalError = undefined;
  }
}
