// Package statuspage tests the status page in Chromium: that it updates itself, that the form works, that nothing is
// loaded from elsewhere, and that it is complete without scripts. With -screenshots DIR it writes the
// pictures of the documentation.
package statuspage
