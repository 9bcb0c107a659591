// Package outcomepb defines how a frontend reports whether an object is in force; generated from
// outcome.proto.
package outcomepb

//go:generate sh -c "protoc -I. --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --go_out=. --go_opt=paths=source_relative outcome.proto"
