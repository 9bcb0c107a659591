// Package kubeproxy reads kube-proxy's command line and its configuration file,
// KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1), and says what they
// mean for weft. Who replaces kube-proxy keeps both as they are.
//
// It starts nothing and sets nothing: the verbs of cmd/weft do what Settings say.
//
// # Which settings count
//
// As with kube-proxy 1.36, a file stands in place of the flags: beside it only
// --hostname-override, --master and the flags of the log count, and of the others
// a warning names those that were given. The fields table says of every field
// which flag it has, and of one that has no effect, why. A setting without effect
// that differs from its default is named in a warning, as are modes other than
// nftables. In such a mode iptables.masqueradeAll and iptables.masqueradeBit are
// what kube-proxy went by, so they count unless the nftables section says
// something else.
//
// Defaults are kube-proxy's, but for nftables.minSyncPeriod: weft needs no
// second between two updates, so without a value it is 100 ms.
//
// # The file
//
// One YAML or JSON document. An unknown or repeated field and a wrong type is an
// error, where kube-proxy itself tries again without looking at these; all of them
// are reported at once, with their lines. What is wrong with a value is, too.
//
// # Changes
//
// Follow returns ErrChanged when the file says something else than at the start;
// weft then ends without a failure, as the DaemonSet starts it again. Its rules
// stay meanwhile. A changed file that cannot be used is reported, and weft goes
// on.
//
// # Errors
//
// What is wrong in a file is an *access.FileError, and what is wrong on the
// command line a *cli.UsageError.
package kubeproxy
