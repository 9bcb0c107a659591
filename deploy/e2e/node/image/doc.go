// Package image is the table of container images that a node of the tests has: for each name the program that it runs. Nothing is
// pulled. What comes in is a reference as in a pod; what goes out is an [Image], or an error that names the table.
//
// # Concurrency
//
// The table never changes.
//
// # Errors
//
// [ErrUnknown] is returned for an image that is not in the table.
package image
