// The module takes the place of the one with this name: see doc.go.
module github.com/ishidawataru/sctp

go 1.26.0

require golang.org/x/net v0.49.0

require golang.org/x/sys v0.40.0 // indirect
