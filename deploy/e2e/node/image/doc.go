// Package image is the table of container images of a test node: the program for each name. In comes a
// reference as in a pod; out goes an [Image], or an error. Images are never pulled.
//
// # Concurrency
//
// The table never changes.
//
// # Errors
//
// [ErrUnknown] means that the image is not in the table.
package image
