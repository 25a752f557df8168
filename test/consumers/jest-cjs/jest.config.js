// MSW 2 needs packages that have only ES modules, so Babel turns them into CommonJS.
const esModules = '(rettime|until-async|@open-draft)';
const toCommonJs = { presets: [['@babel/preset-env', { targets: { node: 'current' } }]] };

module.exports = {
  transform: { [`/node_modules/${esModules}/`]: ['babel-jest', toCommonJs] },
  transformIgnorePatterns: [`/node_modules/(?!${esModules}/)`],
};
