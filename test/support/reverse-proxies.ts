/** nginx and Caddy, which tests start with configurations of the docs. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { findProgram, runsAsRoot } from './programs.ts';
import { openssl, type Requirement, required } from './requirements.ts';

export interface ReverseProxy extends Requirement {
  readonly name: string;
  /** Writes the configuration into the folder. @returns the arguments to start the proxy with */
  write(folder: string, configuration: string): readonly string[];
}

/** Writes a certificate, for localhost or this name, into the folder. @returns the files of the certificate and its key */
export function writeCertificate(folder: string, name = 'DNS:localhost'): readonly [certificate: string, key: string] {
  const [certificate, key] = [path.join(folder, 'host.pem'), path.join(folder, 'host.key')];
  const words = `req -x509 -newkey rsa:2048 -nodes -days 60 -subj /CN=localhost -addext subjectAltName=${name}`;
  execFileSync(required(openssl), [...words.split(' '), '-keyout', key, '-out', certificate], { stdio: 'pipe' });
  return [certificate, key];
}

export const nginx: ReverseProxy = {
  name: 'nginx',
  program: findProgram('nginx', ['/usr/sbin']),
  remedy: 'nginx (Debian package nginx)',
  write(folder, servers) {
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
      .map((kind) => `${kind}_temp_path ${folder}/${kind};`)
      .join(' ');
    // Keep nginx's workers from dropping root, because root owns the folder.
    const user = runsAsRoot ? 'user root;' : '';
    const main = `${user} daemon off; pid ${folder}/pid; error_log stderr;
events { worker_connections 4096; }
http { access_log off; ${temporary}
${servers}}`;
    const file = path.join(folder, 'nginx.conf');
    writeFileSync(file, main);
    return ['-p', folder, '-e', 'stderr', '-c', file];
  },
};

export const caddy: ReverseProxy = {
  name: 'Caddy',
  program: findProgram('caddy'),
  remedy: 'caddy (Debian package caddy)',
  write(folder, configuration) {
    const file = path.join(folder, 'Caddyfile');
    writeFileSync(file, configuration);
    return ['run', '--adapter', 'caddyfile', '--config', file];
  },
};
