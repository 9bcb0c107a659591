package debian

import "strings"

// Kernel accepts the dependencies of linux-image-cloud-amd64 and similar packages. It is for
// Suite.Unpack.
func Kernel(name string) bool {
	for _, prefix := range []string{"linux-image-", "linux-binary-", "linux-modules-"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
