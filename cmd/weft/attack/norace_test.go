//go:build !race

package attack

const raceDetector = false
