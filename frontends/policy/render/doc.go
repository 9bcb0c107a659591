// Package render turns the model of network policies into the ruleset of this node.
package render
