// Package convert converts objects of package nft to messages of the protocol, and back.
//
// # Concurrency
//
// All functions are pure, except the result of Text. Results share slices with the arguments.
package convert
