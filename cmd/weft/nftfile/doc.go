// Package nftfile reads the .nft files of the command line and their included files.
package nftfile
