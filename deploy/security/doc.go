// Package security x
package security
