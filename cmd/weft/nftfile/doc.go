// Package nftfile reads the .nft files of the command line, with the files that
// they include: the daemon reads none.
//
// In come paths, directories and "-"; out go texts ([Read], [Paths]), the fragments
// that they become ([Selection.Sources]) and bundles of several files ([IncludePath.Read]), and the places of violations are
// translated back to the file and line they came from ([LocateError]). Read
// read.go first.
//
// The package refuses files over 64 MiB and files that are not text.
package nftfile
