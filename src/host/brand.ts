/** The operator's name, logo, colour and links on the pages, and the files of the logo. */
import type { Logo } from '../config/brand-files.ts';
import type { Settings } from '../config/settings.ts';
import { get } from '../pages/routes.ts';
import { contactUrl } from '../texts/mailbox.ts';
import { type OwnText, ownText } from '../texts/texts.ts';
import * as assets from './assets.ts';

export type Brand = ReturnType<typeof createBrand>;

/** Returns the `brand` values of the views, the URL of the stylesheet, and the routes of the logo files. */
export function createBrand(settings: Settings['brand']) {
  const { name, logo, logoDark, colour, homeUrl, support, privacyUrl, termsUrl } = settings;
  const files: assets.Assets = new Map();
  const publish = ({ type, base64, width, height }: Logo) => {
    const body = Buffer.from(base64, 'base64');
    return { url: assets.publish(files, `logo.${type}`, body), width, height };
  };
  const [image, dark] = [logo, logoDark].map((one) => one && publish(one));
  const icon = image?.url ?? assets.assetUrls.icon;
  // A wide logo contains the name, so the name is not shown next to it.
  const shown = image && { ...image, isWide: image.width >= 2 * image.height, dark };
  return {
    view(language: string) {
      const own = (text: OwnText | undefined) => text && ownText(text, language);
      const contact = own(support);
      return {
        name: ownText(name, language),
        icon,
        logo: shown,
        homeUrl: own(homeUrl),
        supportUrl: contact && contactUrl(contact),
        privacyUrl: own(privacyUrl),
        termsUrl: own(termsUrl),
      };
    },
    stylesheet: assets.publishStylesheet(files, colour),
    routes: [get('/assets/:name', assets.createServeAsset(files)), ...assets.iconRoutes(image && files.get(image.url))],
  };
}
