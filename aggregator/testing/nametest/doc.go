// Package nametest makes names of objects for tests.
package nametest
