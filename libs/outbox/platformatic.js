module.exports = require('./dist/platformatic.js');
