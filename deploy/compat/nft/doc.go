// Package nft tests that every version of nft(8) that can be had lists what weft commits. It has
// only tests, which print a table:
//
//	cd deploy/compat && go test -count=1 -v -timeout 1h ./nft [-nft.built DIRECTORY]
//
// weft does not run nft; people who look at a node do, with the version of their distribution. The
// machine's own version (1.0.6 on Debian 12) is compared with weft byte by byte elsewhere. Here weft commits Services of both
// families, network policies and every rule of the corpora of nft/compile that weft and the
// kernel accept. Then each version lists each table as text and as JSON, and loads its own text
// again in an empty namespace, which must list the same.
//
// field_test.go compares weft with nft on files that people wrote: "-run '^TestField$' -nft.field DIR".
//
// versions_test.go gets the versions: packages of Debian's suites, and programs that the script
// build made of the sources, from directories named with -nft.built.
package nft
