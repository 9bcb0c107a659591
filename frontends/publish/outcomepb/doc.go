// Package outcomepb is what a frontend tells readers of an object: whether it is in force, and why
// not; generated from outcome.proto.
package outcomepb

//go:generate sh -c "protoc -I. --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --go_out=. --go_opt=paths=source_relative outcome.proto"
