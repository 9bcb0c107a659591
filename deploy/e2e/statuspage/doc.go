// Package statuspage tests the status page in Chromium: updates, the form, loads only from weft, and a
// complete page without scripts. With -screenshots DIR it writes the pictures of the documentation.
package statuspage
