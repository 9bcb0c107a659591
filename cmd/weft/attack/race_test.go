//go:build race

package attack

// raceDetector is true if the daemon runs under the race detector, which multiplies its
// memory.
const raceDetector = true
