// Package adopt starts a state from a dump of the kernel and a record.
//
// Rules name their fragment; for elements the record has the fragments. An adopted fragment keeps
// its content until its snapshot replaces it. Content without a fragment is unclaimed.
package adopt
