// Package statuspage tests the status page in Chromium: that it updates itself, that the form works,
// that it loads only from weft, and that it is complete without scripts. With -screenshots DIR it
// writes the pictures of the documentation.
package statuspage
