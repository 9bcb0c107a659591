// Package nft tests that every available version of nft(8) lists the rules that weft commits. It prints a
// table:
//
//	cd deploy/compat && go test -count=1 -v -timeout 1h ./nft [-nft.built DIRECTORY]
//
// weft commits Services of both families, network policies and every rule of nft/compile's corpora that weft
// and the kernel accept. Each version lists each table as text and as JSON, and loads its own text in an empty
// namespace, which must list the same.
//
// field_test.go compares weft with nft on files of users: "-run '^TestField$' -nft.field DIR". versions_test.go
// gets packages of Debian's suites, and programs of the script build, from directories named with -nft.built.
package nft
