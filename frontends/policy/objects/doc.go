// Package objects describes the Kubernetes objects that the NetworkPolicy frontend follows. Their
// events change the model, which needs a lock around Event.Apply.
//
// The package does not interpret objects: the Parse functions of the model do.
package objects
