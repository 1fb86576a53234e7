package main

import (
	"fmt"
	"log/slog"

	"admitone/hardware/camera"
	"admitone/internal/config"
)

// openCamera makes the camera that a configuration names, and opens nothing: a
// device that is not there yet is waited for.
func openCamera(c config.Camera, log *slog.Logger) (camera.Source, error) {
	switch c.Driver {
	case config.DriverV4L2:
		o, err := deviceOptions(c)
		if err != nil {
			return nil, err
		}
		o.Log = log
		return camera.NewV4L2(o)
	case config.DriverChild:
		return camera.NewChild(camera.ChildOptions{Command: c.Command, Path: c.Socket, Log: log})
	case config.DriverFolder:
		return camera.NewFolder(camera.FolderOptions{Dir: c.Dir, Rate: c.FPS, Log: log})
	}
	return nil, fmt.Errorf("open camera: there is no driver %q", c.Driver)
}

// deviceOptions are a video device's as the configuration has them.
func deviceOptions(c config.Camera) (camera.V4L2Options, error) {
	o := camera.V4L2Options{Device: c.Device, Width: c.Width, Height: c.Height, Rate: c.FPS, Controls: c.Controls}
	if c.Format == "" {
		return o, nil
	}
	var err error
	o.Format, err = camera.ParseFormat(c.Format)
	return o, err
}

// lit puts the lane's light on while frames are dark; level 0: never.
func lit(level int, light func(on bool), look func(camera.Frame)) func(camera.Frame) {
	if level == 0 {
		return look
	}
	dark := camera.NewDark(level, light)
	return func(f camera.Frame) {
		dark.See(f)
		look(f)
	}
}
