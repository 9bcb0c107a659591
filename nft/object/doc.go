// Package object compiles the declarations of chains, flowtables and named
// objects (counter, quota, limit, ct helper, ...).
package object
