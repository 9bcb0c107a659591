package debian

import "strings"

// Kernel accepts the packages in which the files of a kernel are: what linux-image-cloud-amd64 and
// the like depend on. It is for Suite.Unpack.
func Kernel(name string) bool {
	for _, prefix := range []string{"linux-image-", "linux-binary-", "linux-modules-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
