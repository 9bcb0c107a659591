// Package kubeproxy reads kube-proxy's command line and configuration file, KubeProxyConfiguration
// (kubeproxy.config.k8s.io/v1alpha1, and v1alpha2 as KEP-784 designed it).
//
// fields.go is the table of settings, their flags, and why some have no effect.
//
// # Which settings count
//
// As in kube-proxy 1.37, a file replaces the flags, except --hostname-override, --master and the
// flags of the log. Warnings name other given flags, modes other than nftables, and settings
// without effect. In another mode kube-proxy used iptables.masqueradeAll and
// iptables.masqueradeBit, so weft uses them unless the nftables section sets its own.
//
// # The file
//
// The file is one YAML or JSON document. Unknown fields, repeated fields and wrong types are
// errors, although kube-proxy retries without checking them. v1alpha2 is converted to v1alpha1.
//
// # Changes
//
// When the file changes, weft ends with exit code 0, and the DaemonSet restarts it. weft logs
// errors in a changed file and continues.
//
// # Errors
//
// File errors are *access.FileError, command-line errors *cli.UsageError.
package kubeproxy
