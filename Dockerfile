# Gatehouse as an image: docs/operations/deploy.md, "In a container".
# The image behind a tag changes. Use the digest that you have tested: --build-arg NODE_IMAGE=node:24-bookworm-slim@sha256:…
# Its Node must be 24.22.1 or later: earlier ones have a hole (src/base/node-holes.ts). The tag has the latest Node 24.
ARG NODE_IMAGE=node:24-bookworm-slim
FROM ${NODE_IMAGE} AS build
WORKDIR /opt/gatehouse
COPY package.json package-lock.json ./
# To use an npm registry of your own, pass its settings: --secret id=npmrc,src=$HOME/.npmrc
RUN --mount=type=secret,id=npmrc NPM_CONFIG_USERCONFIG=/run/secrets/npmrc \
    npm ci --omit=dev --ignore-scripts --no-audit --no-fund
WORKDIR /own
COPY . .
# Every user may read these files and only root may write them, whatever the umask of the checkout was.
RUN chmod -R u+rwX,go+rX,go-w /own /opt/gatehouse

FROM ${NODE_IMAGE}
LABEL org.opencontainers.image.title="Gatehouse" \
      org.opencontainers.image.description="OAuth 2.0 authorization service of a warehouse GraphQL API" \
      org.opencontainers.image.version="1.0.0" \
      org.opencontainers.image.licenses="MIT"
WORKDIR /opt/gatehouse
COPY --from=build /opt/gatehouse/node_modules ./node_modules
COPY --from=build /own ./
RUN ln -s /opt/gatehouse/bin/gatehouse /usr/local/bin/gatehouse
COPY --from=build /own/config/container.yaml /etc/gatehouse/gatehouse.yaml
ENV GATEHOUSE_CONFIG=/etc/gatehouse/gatehouse.yaml \
    MALLOC_ARENA_MAX=2
# By number, so that Kubernetes can verify that it is not root. It owns nothing and writes nothing: the root file
# system may be read-only.
USER 1000:1000
EXPOSE 3000 3001
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
  CMD ["node", "-e", "fetch(`http://localhost:${process.env.GATEHOUSE_OPERATORS_PORT || 3001}/readyz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=8", "--heap-growing-percent=150", "--no-allocation-site-pretenuring", "src/main.ts"]
