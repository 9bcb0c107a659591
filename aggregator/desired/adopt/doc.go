// Package adopt starts a state from a dump of the kernel and a record.
//
// Rules name the fragment that they belong to; for elements the record says which fragments have a
// share. An adopted fragment keeps its content until its snapshot replaces it. Content without a
// fragment is unclaimed.
package adopt
